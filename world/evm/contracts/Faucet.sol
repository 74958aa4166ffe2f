// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

interface IMintable {
    function mint(address to, uint256 amount) external;
}

interface IWrapped {
    function deposit() external payable;
}

/// Grants tokens once per id. The record of grants is on the chain beside the tokens, so a chain that loses its last
/// second loses both, and a repeated request is exact after any crash.
contract Faucet {
    enum Kind {
        Native,
        Minted,
        Wrapped
    }

    struct Gift {
        Kind kind;
        address token;
        uint256 amount;
    }

    mapping(bytes32 id => bool given) public given;

    error AlreadyGiven(bytes32 id);
    error NotAccepted(address to);

    event Funded(bytes32 indexed id, address indexed to, bytes32 request, Gift[] gifts);

    receive() external payable {}

    function fund(bytes32 id, bytes32 request, address to, Gift[] calldata gifts) external {
        require(!given[id], AlreadyGiven(id));
        given[id] = true;
        for (uint256 i = 0; i < gifts.length; i++) {
            Gift calldata gift = gifts[i];
            if (gift.kind == Kind.Native) {
                (bool ok,) = to.call{value: gift.amount}("");
                require(ok, NotAccepted(to));
            } else if (gift.kind == Kind.Minted) {
                IMintable(gift.token).mint(to, gift.amount);
            } else {
                IWrapped(gift.token).deposit{value: gift.amount}();
                require(IERC20(gift.token).transfer(to, gift.amount), NotAccepted(to));
            }
        }
        emit Funded(id, to, request, gifts);
    }
}
