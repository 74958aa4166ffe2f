// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Addresses} from "./shared/Addresses.sol";

interface IMintable {
    function mint(address to, uint256 amount) external;
}

/// Exchanges USDC and USDC.e one to one. What it does not hold it mints, as any account of a local world may.
contract DollarDesk {
    using SafeERC20 for IERC20;

    error NotDollars(address from, address to);

    function exchange(address from, address to, uint256 amount) external {
        require(
            (from == Addresses.USDC && to == Addresses.USDCE) || (from == Addresses.USDCE && to == Addresses.USDC),
            NotDollars(from, to)
        );
        IERC20(from).safeTransferFrom(msg.sender, address(this), amount);
        uint256 held = IERC20(to).balanceOf(address(this));
        if (held < amount) IMintable(to).mint(address(this), amount - held);
        IERC20(to).safeTransfer(msg.sender, amount);
    }
}
