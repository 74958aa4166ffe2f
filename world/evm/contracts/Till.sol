// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

/// Takes payments in the chain's native coin. The event says who paid, how much and for which task, so that each payment
/// can be found in the logs: those that name no task too.
contract Till {
    using SafeERC20 for IERC20;

    address private immutable OWNER;

    error NotOwner(address caller);
    error NotAccepted(address to);

    event Paid(address payer, uint256 amount, bytes32 task);
    event Withdrawn(address token, address to, uint256 amount);

    constructor(address owner) {
        OWNER = owner;
    }

    receive() external payable {
        emit Paid(msg.sender, msg.value, bytes32(0));
    }

    function pay(bytes32 task) external payable {
        emit Paid(msg.sender, msg.value, task);
    }

    /// Distinguishes the contract from an account without code, which accepts any call.
    function isTill() external pure returns (bool) {
        return true;
    }

    /// The zero address is the native coin.
    function withdraw(address token, address to, uint256 amount) external {
        require(msg.sender == OWNER, NotOwner(msg.sender));
        emit Withdrawn(token, to, amount);
        if (token != address(0)) return IERC20(token).safeTransfer(to, amount);
        (bool ok,) = to.call{value: amount}("");
        require(ok, NotAccepted(to));
    }
}
